"""Several faults in one file: which one is the verdict, and which are not judged at all."""
