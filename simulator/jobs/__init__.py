"""Several programs as one: jobs that share a machine, what others send, results by job."""
