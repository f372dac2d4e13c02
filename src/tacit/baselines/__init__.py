from tacit.baselines.popularity import Popularity as Popularity
from tacit.baselines.ridge import Ridge as Ridge
