#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "otlp/profiles_builder.h"
#include "symbols/frame_symbolizer.h"

namespace tributary::otlp {

// Adds frames to requests, with the names that symbol tables have for them. Demangles each name once. It keeps the
// tables that it has used, and one text per name. So use one object for the samples of a few seconds or minutes. Use it
// on one thread.
class FrameLocations {
 public:
  explicit FrameLocations(SymbolLookup symbols) : symbolizer_(std::move(symbols)) {}

  // `id` and `path`: of the frame's executable. `own_name`: the result of FrameSymbolizer::OwnName for this frame. The
  // bytes of `own_name` must stay valid as long as this object.
  template <typename AnyFrame>
  LocationIndex Add(const AnyFrame& frame, const ExecutableId& id, std::string_view path, std::string_view own_name,
                    ProfilesBuilder& builder) {
    const MappingIndex mapping = builder.AddMapping(id, path);
    const FrameSymbolizer::Place place = symbolizer_.Find(frame, id);
    lines_.clear();
    FrameSymbolizer::ForEachFrame(place, frame, own_name, [&](const SymbolTable::Frame& of) {
      AddLine(of, !own_name.empty(), builder);
      return true;
    });
    return builder.AddLocation(place.kind, mapping, place.address, lines_);
  }

 private:
  void AddLine(const SymbolTable::Frame& frame, bool is_own_name, ProfilesBuilder& builder);

  FrameSymbolizer symbolizer_;
  absl::flat_hash_map<const char*, std::string> demangled_;  // by the address of the name in its table
  std::vector<ProfilesBuilder::Line> lines_;                 // of the current frame
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
