from tacit.solvers.cg import cg as cg
from tacit.solvers.subspace import leading_subspace as leading_subspace
