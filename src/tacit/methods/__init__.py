from tacit.methods.faie import FaIE as FaIE
from tacit.methods.geneml import GenEML as GenEML
from tacit.methods.leml import LEML as LEML
from tacit.methods.mpu import MPU as MPU
from tacit.methods.sem import SEM as SEM
from tacit.methods.tacit import Tacit as Tacit
