#include <llvm/Demangle/ItaniumDemangle.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "symbols/demangle_internal.h"

// llvm::itaniumDemangle parses a name into a graph and writes the graph as text. The graph is as small as the name, but
// parts of it are shared, so the text may be exponentially longer. Therefore this file uses the same parser with a step
// in between: it computes an upper bound of the text's length on the graph. The length of a shared part is computed
// once, and added wherever the part is written.

namespace tributary {
namespace {

namespace itanium = llvm::itanium_demangle;

// Deeper than any name people write. A hostile name would overflow the stack of the code that walks the graph.
constexpr int kDepthMax = 1000;
constexpr uint64_t kTooLong = uint64_t{1} << 40;

// The parser allocates its nodes here. Their destructors have nothing to do.
class Arena {
 public:
  void reset() { blocks_.clear(); }

  template <typename T, typename... Args>
  T* makeNode(Args&&... args) {
    return new (Allocate(sizeof(T))) T(std::forward<Args>(args)...);
  }
  void* allocateNodeArray(size_t count) { return Allocate(sizeof(itanium::Node*) * count); }

 private:
  static constexpr size_t kBlockBytes = 4096;

  void* Allocate(size_t size) {
    size = (size + 15) & ~size_t{15};
    if (size > left_) {
      left_ = std::max(size, kBlockBytes);
      blocks_.push_back(std::make_unique<std::max_align_t[]>(left_ / sizeof(std::max_align_t) + 1));
      next_ = reinterpret_cast<char*>(blocks_.back().get());
    }
    void* p = next_;
    next_ += size;
    left_ -= size;
    return p;
  }

  std::vector<std::unique_ptr<std::max_align_t[]>> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
};

// The base parser recurses once per letter of names like _Z1fPPPPPPi. This parser stops in time and refuses the name.
class Parser : public itanium::AbstractManglingParser<Parser, Arena> {
 public:
  using Base = itanium::AbstractManglingParser<Parser, Arena>;
  using Base::Base;

  // Every cycle of the grammar goes through one of these functions. The base class calls them on this class.
  itanium::Node* parseType() {
    return Deeper([&] { return Base::parseType(); });
  }
  itanium::Node* parseExpr() {
    return Deeper([&] { return Base::parseExpr(); });
  }
  itanium::Node* parseQualifiedType() {
    return Deeper([&] { return Base::parseQualifiedType(); });
  }
  itanium::Node* parseTemplateArg() {
    return Deeper([&] { return Base::parseTemplateArg(); });
  }
  itanium::Node* parseTemplateParamDecl(TemplateParamList* params) {
    return Deeper([&] { return Base::parseTemplateParamDecl(params); });
  }
  itanium::Node* parseBracedExpr() {
    return Deeper([&] { return Base::parseBracedExpr(); });
  }
  itanium::Node* parseName(NameState* state = nullptr) {
    return Deeper([&] { return Base::parseName(state); });
  }
  itanium::Node* parseEncoding(bool parameters = true) {
    return Deeper([&] { return Base::parseEncoding(parameters); });
  }
  itanium::Node* parseUnqualifiedName(NameState* state, itanium::Node* scope, itanium::ModuleName* module) {
    return Deeper([&] { return Base::parseUnqualifiedName(state, scope, module); });
  }

 private:
  static constexpr int kDepthMax = 400;

  template <typename Parse>
  itanium::Node* Deeper(Parse parse) {
    if (depth_ >= kDepthMax) return nullptr;
    ++depth_;
    itanium::Node* node = parse();
    --depth_;
    return node;
  }

  int depth_ = 0;
};

// Computes an upper bound of a node's text. `pack` is the size of the largest parameter pack within the node: an
// expansion writes its child once per element.
class LengthBound {
 public:
  struct Cost {
    uint64_t bytes = 0;
    uint64_t pack = 1;
  };

  Cost Of(const itanium::Node* node) {
    if (node == nullptr) return {};
    if (auto known = known_.find(node); known != known_.end()) return known->second;
    if (depth_ >= kDepthMax) return {kTooLong, 1};
    ++depth_;
    Cost cost;
    node->visit([&](const auto* concrete) { cost = OfConcrete(concrete); });
    --depth_;
    cost.bytes = std::min(cost.bytes, kTooLong);
    known_[node] = cost;
    return cost;
  }

 private:
  // Punctuation and keywords that a node itself writes. The longest are like "construction vtable for ".
  static constexpr uint64_t kOwnBytes = 48;

  template <typename NodeType>
  Cost OfConcrete(const NodeType* node) {
    Cost sum{kOwnBytes, 1};
    node->match([&](const auto&... parts) { (Add(sum, parts), ...); });
    return sum;
  }
  // A reference resolved after parsing, possibly to a node that contains the reference: the second visit then writes
  // nothing. Occurs only in templated conversion operators. A reference within another is not worth following.
  Cost OfConcrete(const itanium::ForwardTemplateReference* node) {
    if (node->Ref == nullptr || open_reference_ == node) return {kOwnBytes, 1};
    if (open_reference_ != nullptr) return {kTooLong, 1};
    open_reference_ = node;
    Cost cost = Of(node->Ref);
    open_reference_ = nullptr;
    return cost;
  }
  Cost OfConcrete(const itanium::ParameterPack* node) {
    Cost sum{kOwnBytes, 1};
    node->match([&](itanium::NodeArray elements) {
      Add(sum, elements);
      sum.pack = std::max<uint64_t>(sum.pack, elements.size());
    });
    return sum;
  }
  Cost OfConcrete(const itanium::ParameterPackExpansion* node) {
    Cost child = Of(node->getChild());
    return {kOwnBytes + std::min(child.bytes, kTooLong) * std::min<uint64_t>(child.pack, 1u << 16), child.pack};
  }

  // One constructor argument of a node. Enums, numbers and flags are within kOwnBytes.
  template <typename Part>
  void Add(Cost& sum, const Part& part) {
    if constexpr (std::is_convertible_v<Part, const itanium::Node*>) {
      Cost cost = Of(part);
      sum.bytes = std::min(sum.bytes + cost.bytes, kTooLong);
      sum.pack = std::max(sum.pack, cost.pack);
    } else if constexpr (std::is_same_v<Part, itanium::NodeArray>) {
      for (const itanium::Node* element : part) Add(sum, element);
    } else if constexpr (std::is_same_v<Part, std::string_view>) {
      sum.bytes += part.size();
    } else {
      static_assert(std::is_arithmetic_v<Part> || std::is_enum_v<Part>);
    }
  }

  absl::flat_hash_map<const itanium::Node*, Cost> known_;
  const itanium::ForwardTemplateReference* open_reference_ = nullptr;
  int depth_ = 0;
};

struct Free {
  void operator()(char* p) const { free(p); }
};

}  // namespace

std::optional<std::string> DemangleItanium(std::string_view name) {
  Parser parser(name.data(), name.data() + name.size());
  itanium::Node* root = parser.parse();
  if (root == nullptr) return std::nullopt;
  if (LengthBound().Of(root).bytes > kDemangledBytesMax) return std::nullopt;
  itanium::OutputBuffer out;
  root->print(out);
  std::unique_ptr<char, Free> buffer(out.getBuffer());
  return std::string(out.getBuffer(), out.getCurrentPosition());
}

}  // namespace tributary
