from tacit.blocks.facts import Facts as Facts
from tacit.engines.problem import Problem as Problem
from tacit.estimators.estimator import MultiLabelEstimator as MultiLabelEstimator
from tacit.estimators.estimator import checked_k as checked_k
from tacit.estimators.estimator import shared_checks as shared_checks
from tacit.estimators.fit import Fit as Fit
from tacit.estimators.online import Online as Online
from tacit.models import Completion as Completion
