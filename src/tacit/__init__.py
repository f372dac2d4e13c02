"""tacit: multi-label learning when most true labels were never written down."""

from tacit.labels import Labels as Labels
from tacit.labels import TopK as TopK
from tacit.methods import LEML as LEML
from tacit.saved import load as load
from tacit.saved import save as save

__version__ = "0.1.0"
