// The device's half of self-tests: to[i] = from[i] + 1.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void pass_on(__global const uint* from,
                                                                     __global uint* to, int count) {
  for (int i = 0; i < count; ++i) to[i] = from[i] + 1;
}
