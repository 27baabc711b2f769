// How much memory this process can still have.
#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/status.h"

namespace tandem {

// Bytes, by what the kernel says is available (swap included), by the limits of this process and of
// its control group. The greatest number if nothing can be found out.
uint64_t memory_left();

// kResourceExhausted if there are no `bytes` for `what` ("the activations"). To be asked before
// large allocations: where memory is overcommitted they succeed, and the process is killed when it
// touches them.
Status check_memory(uint64_t bytes, std::string_view what);

}  // namespace tandem
