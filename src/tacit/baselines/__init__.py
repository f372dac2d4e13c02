from tacit.baselines.binary_relevance import BinaryRelevance as BinaryRelevance
from tacit.baselines.elkan08 import Elkan08 as Elkan08
from tacit.baselines.m3l import M3L as M3L
from tacit.baselines.nnml import NNML as NNML
from tacit.baselines.popularity import Popularity as Popularity
from tacit.baselines.ridge import Ridge as Ridge
from tacit.baselines.well import WELL as WELL
from tacit.label_space import LabelSpaceReduction as LabelSpaceReduction
