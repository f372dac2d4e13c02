"""Tacit, the estimator that chooses for the user.

The files of this folder, in the order of a fit:

- `estimator`: the parameters, and `_fit`, the algorithm box
- `plan`: what will be tried, why not the rest, and what it costs; `limits`: up to which size
- `watch`: the clock, and what a budget still has room for
- `deal`: rows into folds
- `first`: first models, a file and a formula each
- `parts`: all first models and the second look, fitted to some rows
- `shortlists`: the labels in question in a row; `second_look`: they are looked at again
- `held_out`: what the parts say of rows not seen, and which of them are in; `judge`: how well
- `ceiling`: which share of the true labels was said, of all and of each, and how sure that is
- `blend`: one logistic regression of the parts, with the share said as its ceiling
- `blended`: the model that is left behind; `report`: what each part brought
- `voice`: a first model as the blend hears it; `saved`: model files
- `earlier`: the model that version 0.1.0 left behind
"""

from tacit.methods.tacit.estimator import Tacit as Tacit
from tacit.methods.tacit.limits import LIMITS as LIMITS
from tacit.methods.tacit.limits import Limits as Limits
from tacit.methods.tacit.plan import Plan as Plan

__all__ = ["LIMITS", "Limits", "Plan", "Tacit"]
