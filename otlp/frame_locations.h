#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/strong.h"
#include "otlp/profiles_builder.h"
#include "symbols/frame_symbolizer.h"

namespace tributary::otlp {

// Adds frames to requests, with the names that symbol tables have for them. Looks up each frame and demangles each name
// once, also if several requests need it. It keeps the tables that it has used, and one text per name. So use one
// object for the samples of a few seconds or minutes. Use it on one thread.
class FrameLocations {
 public:
  using Resolved = Strong<struct ResolvedFrameTag, uint32_t>;

  explicit FrameLocations(SymbolLookup symbols) : symbolizer_(std::move(symbols)) {}

  // Looks up a frame. `id` and `path`: of the frame's executable. `own_name`: the result of FrameSymbolizer::OwnName
  // for this frame. `id` and the bytes of `path` and `own_name` must stay valid, and where they are, as long as this
  // object.
  template <typename AnyFrame>
  Resolved Resolve(const AnyFrame& frame, const ExecutableId& id, std::string_view path, std::string_view own_name) {
    const FrameSymbolizer::Place place = symbolizer_.Find(frame, id);
    const auto first_line = static_cast<uint32_t>(lines_.size());
    FrameSymbolizer::ForEachFrame(place, frame, own_name, path, [&](const SymbolTable::Frame& of) {
      AddLine(of, !own_name.empty());
      return true;
    });
    frames_.push_back({.kind = place.kind,
                       .address = place.address,
                       .mapping = MappingOf(frame.kind, id, path),
                       .first_line = first_line,
                       .line_count = static_cast<uint32_t>(lines_.size()) - first_line});
    return Resolved(static_cast<uint32_t>(frames_.size() - 1));
  }
  // Must be called before the first frame of each request.
  void BeginRequest();
  LocationIndex Add(Resolved frame, ProfilesBuilder& builder);

 private:
  static constexpr int32_t kNotAdded = -1;
  struct Mapping {
    const ExecutableId* id = nullptr;
    std::string_view path;
    int32_t in_request = kNotAdded;  // MappingIndex
  };
  struct Function {
    const std::string* name = nullptr;  // demangled, in names_
    std::string_view system_name, file;
    int32_t in_request = kNotAdded;  // FunctionIndex
  };
  struct Line {
    uint32_t function = 0;  // in functions_
    uint32_t line = 0;
  };
  struct Frame {
    FrameKind kind = FrameKind::kUnknown;
    uint64_t address = 0;
    uint32_t mapping = 0;                     // in mappings_
    uint32_t first_line = 0, line_count = 0;  // in lines_
  };

  // Returns the number of no mapping for a kind whose executables are source files.
  uint32_t MappingOf(FrameKind kind, const ExecutableId& id, std::string_view path);
  void AddLine(const SymbolTable::Frame& frame, bool is_own_name);

  FrameSymbolizer symbolizer_;
  std::vector<Frame> frames_;
  std::vector<Line> lines_;
  std::vector<Mapping> mappings_;
  std::vector<Function> functions_;
  absl::flat_hash_map<std::pair<ExecutableId, const char*>, uint32_t> mapping_numbers_;  // by id and path
  // By the addresses of the name and of the file in their table.
  absl::flat_hash_map<std::pair<const char*, const char*>, uint32_t> function_numbers_;
  // By the address of the name in its table. A node stays where it is.
  std::unordered_map<const char*, std::string> names_;
  std::vector<ProfilesBuilder::Line> added_;  // of the current frame
};

// The attributes and the link to a trace span that are sent with a sample.
struct Annotations {
  AttributesIndex attributes;
  LinkIndex link;
};
// Adds a sample's own attributes, encoded by EncodeAttributes, to the attributes `others`. A link's ids arrive as
// attributes. They stay attributes if they are not a valid link.
Annotations AddAnnotations(AttributesIndex others, std::string_view own, ProfilesBuilder& builder);

}  // namespace tributary::otlp
