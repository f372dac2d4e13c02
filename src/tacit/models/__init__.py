from tacit.models.completion import Completion as Completion
from tacit.models.explanation import Explanation as Explanation
from tacit.models.fold_in import fold_in as fold_in
from tacit.models.low_rank import FixedH as FixedH
from tacit.models.low_rank import FixedW as FixedW
from tacit.models.low_rank import LowRank as LowRank
from tacit.models.model import Model as Model
