"""The frontend of PaddlePaddle: programs as ProgramDesc and PIR, with weights."""
