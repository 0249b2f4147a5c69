"""Reader of Caffe nets: parse, upgrade, then import one to one."""
