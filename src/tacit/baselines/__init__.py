from tacit.baselines.binary_relevance import BinaryRelevance as BinaryRelevance
from tacit.baselines.nnml import NNML as NNML
from tacit.baselines.popularity import Popularity as Popularity
from tacit.baselines.ridge import Ridge as Ridge
