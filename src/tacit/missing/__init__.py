"""Missing labels: hide some on purpose, and estimate how many were hidden from you.

`hide` and its mechanisms are in `hide.py`; `estimate(model, X, Y)` in `estimate.py` says how many
labels nobody wrote down, from the rates at which true labels are said (`rates.py`).
"""

from tacit.missing.estimate import Missing as Missing
from tacit.missing.estimate import estimate as estimate
from tacit.missing.hide import Covariates as Covariates
from tacit.missing.hide import Exposure as Exposure
from tacit.missing.hide import Hidden as Hidden
from tacit.missing.hide import Mechanism as Mechanism
from tacit.missing.hide import Positives as Positives
from tacit.missing.hide import UniformEntries as UniformEntries
from tacit.missing.hide import hide as hide
from tacit.missing.rates import HeldOut as HeldOut
from tacit.missing.rates import Rates as Rates
from tacit.missing.rates import profile_rates as profile_rates
