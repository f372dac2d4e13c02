"""Codecs: short codes of label vectors, for a regression to predict in their place.

A codec learns from a `CodecData` a code: `encode` gives the codes of rows, the factor `H` of shape
(n_labels, rank) is what decodes them, and `decode(codes, H)` gives scores, as a rule codes · Hᵀ.
One file each; `tacit.label_space` has the estimator around them.
"""

from tacit.codecs.bmad import BMaD as BMaD
from tacit.codecs.code import Code as Code
from tacit.codecs.code import LinearCode as LinearCode
from tacit.codecs.codec_data import CodecData as CodecData
from tacit.codecs.cplst import CPLST as CPLST
from tacit.codecs.cs import CS as CS
from tacit.codecs.cssp import CSSP as CSSP
from tacit.codecs.faie import FaIECodec as FaIECodec
from tacit.codecs.plst import PLST as PLST
from tacit.codecs.rembed import REmbed as REmbed
