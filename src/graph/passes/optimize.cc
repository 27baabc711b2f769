#include <utility>

#include "graph/passes/passes.h"

namespace tandem {

StatusOr<Graph> optimize(const Graph& graph) {
  Graph result = graph;
  for (const auto pass : {fold_constants, simplify, move_permutations, simplify, recognize_gates,
                          recognize_layer_norms, fuse_matmuls, simplify, fuse_pads, fold_affine,
                          fuse_residuals, fuse_activations}) {
    TANDEM_ASSIGN_OR_RETURN(result, pass(result));
  }
  return result;
}

}  // namespace tandem
