from tacit.methods.leml import LEML as LEML
