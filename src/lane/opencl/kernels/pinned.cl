// The kernels of sync.cl for memory that the host has mapped: with accesses that compilers leave as
// they are in place of atomics, which devices need not have for such memory.

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void wait_for(
    __global volatile uint* words, long counter, uint target, long abort, ulong max_polls) {
  for (ulong poll = 0; poll < max_polls; ++poll) {
    if ((int)(words[counter] - target) >= 0) {
      mem_fence(CLK_GLOBAL_MEM_FENCE);
      return;
    }
    if (words[abort] != 0) return;
  }
  words[abort] = 1;
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void signal_progress(
    __global volatile uint* words, long counter, uint value) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  words[counter] = value;
}
