// Progress counters shared with the host. Build option HOST_CPU: the device is the host's
// processor, so that device scope reaches all that all-devices scope would.

#if defined(__opencl_c_atomic_scope_all_devices) || \
    (__OPENCL_C_VERSION__ >= 200 && __OPENCL_C_VERSION__ < 300)
#define SCOPE memory_scope_all_svm_devices
#elif HOST_CPU
#define SCOPE memory_scope_device
#else
#error "the OpenCL C compiler lacks all-devices memory scope: use the mechanism `event`"
#endif

// Waits for words[counter]. Gives up after max_polls, and tells the host by way of words[abort].
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void wait_for(
    __global atomic_uint* words, long counter, uint target, long abort, ulong max_polls) {
  for (ulong poll = 0; poll < max_polls; ++poll) {
    const uint progress = atomic_load_explicit(words + counter, memory_order_acquire, SCOPE);
    if ((int)(progress - target) >= 0) return;
    if (atomic_load_explicit(words + abort, memory_order_relaxed, SCOPE) != 0) return;
  }
  atomic_store_explicit(words + abort, 1, memory_order_release, SCOPE);
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void signal_progress(
    __global atomic_uint* words, long counter, uint value) {
  atomic_store_explicit(words + counter, value, memory_order_release, SCOPE);
}
