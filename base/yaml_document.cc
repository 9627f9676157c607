#include "base/yaml_document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/utf8.h"

namespace tributary {
namespace {

constexpr size_t kShownKeyBytesMax = 64;

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

std::string At(int line, int column, std::string_view message) {
  return fmt::format("line {}, column {}: {}", line, column, message);
}

// The number of nodes of a document or of a part of it, and the bytes of its texts.
struct Size {
  size_t nodes = 0, bytes = 0;
};

Size SizeOf(const YamlNode& node) {
  Size size{1, node.text.size() + node.key.size()};
  for (const YamlNode& child : node.children) {
    const Size more = SizeOf(child);
    size.nodes += more.nodes;
    size.bytes += more.bytes;
  }
  return size;
}

// Builds the tree from the parser's events. yaml-cpp's own tree has no positions of keys, keeps both of two equal keys,
// and copies no alias, so that a walk over the tree has no bound. Errors are thrown as yaml-cpp's exceptions, because
// they must pass through its parser. ParseYaml catches them.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlLimits& limits) : limits_(limits) {}

  YamlNode Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Complete(NodeAt(mark, YamlNode::Kind::kNull), anchor, mark);
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
    YamlNode node = NodeAt(mark, YamlNode::Kind::kScalar);
    node.text = value;
    Complete(std::move(node), anchor, mark);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) throw YAML::ParserException(mark, "the alias is inside its own anchor");
    Count(SizeOf(it->second), mark);
    YamlNode copy = it->second;
    Complete(std::move(copy), YAML::NullAnchor, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(NodeAt(mark, YamlNode::Kind::kSequence), anchor, mark);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(NodeAt(mark, YamlNode::Kind::kMap), anchor, mark);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  // A map or sequence that has not ended.
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    std::set<std::string> keys{};  // of a map
    bool has_key = false;          // of a map: the next node is the value of `key`
    std::string key{};
    YAML::Mark key_mark{};
  };

  static YamlNode NodeAt(const YAML::Mark& mark, YamlNode::Kind kind) {
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void Count(Size more, const YAML::Mark& mark) {
    size_.nodes += more.nodes;
    size_.bytes += more.bytes;
    if (size_.nodes > limits_.nodes_max || size_.bytes > limits_.bytes_max) {
      throw YAML::ParserException(
          mark, fmt::format("the document is too large: with a copy for each alias, it may have {} values and {} bytes",
                            limits_.nodes_max, limits_.bytes_max));
    }
  }

  void Open(YamlNode node, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (open_.size() >= limits_.depth_max) {
      throw YAML::ParserException(mark, fmt::format("maps and lists are nested more than {} deep", limits_.depth_max));
    }
    if (!open_.empty() && open_.back().node.IsMap() && !open_.back().has_key) {
      throw YAML::ParserException(mark, "a key must be text");
    }
    open_.push_back({.node = std::move(node), .anchor = anchor, .mark = mark});
  }

  void Close() {
    Frame frame = std::move(open_.back());
    open_.pop_back();
    Complete(std::move(frame.node), frame.anchor, frame.mark);
  }

  void TakeKey(Frame& map, YamlNode node, const YAML::Mark& mark) {
    if (!node.IsScalar()) throw YAML::ParserException(mark, "a key must be text");
    if (!map.keys.insert(node.text).second) {
      const std::string_view shown = CutUtf8(node.text, kShownKeyBytesMax);
      throw YAML::ParserException(mark, fmt::format("the key '{}' stands twice", EscapeForDisplay(shown)));
    }
    map.has_key = true;
    map.key = std::move(node.text);
    map.key_mark = mark;
  }

  // Puts a complete node into the map or sequence around it.
  void Complete(YamlNode node, YAML::anchor_t anchor, const YAML::Mark& mark) {
    Count({1, node.text.size()}, mark);
    if (anchor != YAML::NullAnchor) {
      Count(SizeOf(node), mark);  // the copy below
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& parent = open_.back();
    if (parent.node.IsMap()) {
      if (!parent.has_key) return TakeKey(parent, std::move(node), mark);
      parent.has_key = false;
      node.key = std::move(parent.key);
      node.key_line = parent.key_mark.line + 1;
      node.key_column = parent.key_mark.column + 1;
    }
    parent.node.children.push_back(std::move(node));
  }

  const YamlLimits limits_;
  YamlNode root_;
  std::vector<Frame> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  Size size_;
};

// Returns the error for the first byte that a YAML text must not have.
absl::Status CheckText(std::string_view text) {
  int line = 1, column = 1;
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) return Invalid(At(line, column, "the text is not UTF-8"));
    if (text[0] == '\0') return Invalid(At(line, column, "the text has a NUL byte"));
    ++column;
    if (text[0] == '\n') {
      ++line;
      column = 1;
    }
    text.remove_prefix(length);
  }
  return absl::OkStatus();
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view member) const {
  const auto it = std::find_if(children.begin(), children.end(), [&](const YamlNode& c) { return c.key == member; });
  return IsMap() && it != children.end() ? &*it : nullptr;
}

std::string AtValue(const YamlNode& node, std::string_view message) { return At(node.line, node.column, message); }

absl::StatusOr<YamlNode> ParseYaml(std::string_view text, const YamlLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return Invalid(fmt::format("the text has more than {} bytes", limits.bytes_max));
  }
  RETURN_IF_ERROR(CheckText(text));
  TreeBuilder builder(limits);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& e) {
    return Invalid(At(e.mark.line + 1, e.mark.column + 1, EscapeForDisplay(e.msg)));
  }
  return builder.Take();
}

absl::StatusOr<std::string> ReadYamlText(const std::string& path, const YamlLimits& limits) {
  std::ifstream file(path, std::ios::binary);
  std::string text(limits.bytes_max + 1, '\0');  // one more byte than allowed, so that ParseYaml sees a longer file
  if (!file) {
    return Error(absl::StatusCode::kNotFound, "the file cannot be read; check the path and the file's permissions");
  }
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error(absl::StatusCode::kNotFound, "the file cannot be read; it must be a file, not a folder");
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace tributary
