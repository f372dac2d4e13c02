"""What version 0.1.0 wrote into files: no fit makes it any more."""
