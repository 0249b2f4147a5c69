import subprocess as subprocess
