"""What tests of the service share."""

from benchmarks.service_process import TOKEN, ServiceProcess, bearer

__all__ = ["TOKEN", "ServiceProcess", "bearer"]
