#include <stdint.h>
#include <stddef.h>
#include <math.h>
#include <string.h>
int f(int x){return x;}
