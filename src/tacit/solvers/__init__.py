from tacit.solvers.cg import cg as cg
from tacit.solvers.cholesky import cholesky as cholesky
from tacit.solvers.climb import Climbing as Climbing
from tacit.solvers.climb import climb as climb
from tacit.solvers.climb import shared_curvature as shared_curvature
from tacit.solvers.subspace import leading_subspace as leading_subspace
from tacit.solvers.tron import Objective as Objective
from tacit.solvers.tron import tron as tron
