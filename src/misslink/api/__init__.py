"""What is done with a finished run; the functions of `misslink` and of its commands."""
