#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/yaml_document.h"

namespace {

using tributary::YamlLimits;
using tributary::YamlNode;

// Checks that the tree keeps the limits. Adds its nodes and the bytes of its texts to `nodes` and `bytes`.
void CheckTree(const YamlNode& node, const YamlLimits& limits, size_t depth, size_t* nodes, size_t* bytes) {
  TRIBUTARY_CHECK(depth <= limits.depth_max);
  TRIBUTARY_CHECK(node.children.empty() || node.IsMap() || node.IsSequence());
  *nodes += 1;
  *bytes += node.text.size() + node.key.size();
  std::set<std::string> keys;
  for (const YamlNode& child : node.children) {
    TRIBUTARY_CHECK(!node.IsMap() || keys.insert(child.key).second);
    CheckTree(child, limits, depth + (child.IsMap() || child.IsSequence() ? 1 : 0), nodes, bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  const YamlLimits limits{.bytes_max = 4'096, .depth_max = 8, .nodes_max = 200};
  const auto root = ParseYaml({reinterpret_cast<const char*>(data), size}, limits);
  if (!root.ok()) {
    TRIBUTARY_CHECK(root.status().code() == absl::StatusCode::kInvalidArgument);
    TRIBUTARY_CHECK(size > limits.bytes_max || root.status().message().substr(0, 5) == "line ");
    return 0;
  }
  size_t nodes = 0, bytes = 0;
  CheckTree(*root, limits, root->children.empty() ? 0 : 1, &nodes, &bytes);
  TRIBUTARY_CHECK(nodes <= limits.nodes_max && bytes <= limits.bytes_max);
#ifdef TRIBUTARY_PLANT_CRASH
  const YamlNode* service = root->Find("service");
  if (service != nullptr && service->IsMap() && service->children.size() == 2) abort();
#endif
  return 0;
}
