#include "lane/lane.h"

namespace tandem {

const char* to_string(SharedMemoryKind kind) {
  switch (kind) {
    case SharedMemoryKind::kNone:
      return "none";
    case SharedMemoryKind::kCoarse:
      return "coarse-grained SVM";
    case SharedMemoryKind::kFine:
      return "fine-grained SVM without atomics";
    case SharedMemoryKind::kFineAtomics:
      return "fine-grained SVM with atomics";
  }
  return "unknown";
}

}  // namespace tandem
