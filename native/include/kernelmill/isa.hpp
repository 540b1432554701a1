// The instruction sets of this build, and the one in use.
#pragma once

#include <string>
#include <vector>

namespace kernelmill {

std::vector<std::string> built_isas();      // compiled in, weakest first
std::vector<std::string> available_isas();  // those that this CPU supports

std::string get_isa();
// Throws std::invalid_argument for a name that is not available.
void set_isa(const std::string& name);

}  // namespace kernelmill
