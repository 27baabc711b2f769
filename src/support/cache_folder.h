// Where caches are kept.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// $XDG_CACHE_HOME/tandem/NAME or ~/.cache/tandem/NAME; "none" if there is no home.
std::string default_cache_folder(std::string_view name);

// Where what cannot be made again at once is kept: $XDG_DATA_HOME/tandem/NAME or
// ~/.local/share/tandem/NAME; "none" if there is no home.
std::string default_data_folder(std::string_view name);

}  // namespace tandem
