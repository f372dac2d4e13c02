"""Metrics: how well labels were found, scored only on what is known.

Every metric is called as `metric(truth, predicted, ...)`, the truth first as in scikit-learn.

**truth** is `Labels`, or a 0/1 array or sparse matrix, read as complete (NaN: unsaid).

- *complete*: every entry counts.
- *masked*: only observed entries count. Labels that were not observed are taken out of a ranking
  before it is cut at k, so those behind them move up; sets and AUC count observed cells alone.
- *positive-only*: what was not said counts as not relevant, as what was said no to is for certain,
  so P@k and its kin are lower bounds on the truth. `psp_at_k` and `psndcg_at_k` correct for that,
  as far as the propensities are right.

**predicted** is one of

- a dense array (n_samples, n_labels): scores for a ranking, an indicator of 0 and 1 for a set;
- a `TopK`: the ranking cut at its k; as a set, the labels it lists;
- a sparse matrix: only the stored entries are offered; as a set, its ones.

Rankings break ties by the lowest label index. A score of -inf means that the label is not offered.
Metrics of the whole ranking (AUC, coverage, ranking loss, label-ranking AP) need a score for every
label, hence a dense array; they treat ties as scikit-learn does. Where a metric is defined for no
row at all it is nan.
"""

from tacit.metrics.calibration import calibration_error as calibration_error
from tacit.metrics.calibration import reliability as reliability
from tacit.metrics.propensity import propensities as propensities
from tacit.metrics.propensity import psndcg_at_k as psndcg_at_k
from tacit.metrics.propensity import psp_at_k as psp_at_k
from tacit.metrics.ranking import auc_per_instance as auc_per_instance
from tacit.metrics.ranking import auc_per_label as auc_per_label
from tacit.metrics.ranking import coverage as coverage
from tacit.metrics.ranking import label_ranking_ap as label_ranking_ap
from tacit.metrics.ranking import ranking_loss as ranking_loss
from tacit.metrics.sets import best_threshold as best_threshold
from tacit.metrics.sets import example_accuracy as example_accuracy
from tacit.metrics.sets import example_f1 as example_f1
from tacit.metrics.sets import hamming_loss as hamming_loss
from tacit.metrics.sets import macro_f1 as macro_f1
from tacit.metrics.sets import micro_f1 as micro_f1
from tacit.metrics.thresholds import at_thresholds as at_thresholds
from tacit.metrics.thresholds import precision_threshold as precision_threshold
from tacit.metrics.thresholds import wilson as wilson
from tacit.metrics.top import ndcg_at_k as ndcg_at_k
from tacit.metrics.top import precision_at_k as precision_at_k
from tacit.metrics.top import recall_at_k as recall_at_k
