#include "otlp/frame_locations.h"

#include "base/hex.h"
#include "profile/attributes.h"
#include "symbols/demangle.h"

namespace tributary::otlp {

void FrameLocations::AddLine(const SymbolTable::Frame& frame, bool is_own_name, ProfilesBuilder& builder) {
  if (frame.name.empty()) return;
  auto [name, added] = demangled_.try_emplace(frame.name.data());
  if (added) name->second = is_own_name ? std::string(frame.name) : Demangle(frame.name);
  lines_.push_back({builder.AddFunction(name->second, frame.name, frame.file), frame.line});
}

Annotations AddAnnotations(AttributesIndex others, std::string_view own, ProfilesBuilder& builder) {
  Attributes attributes = DecodeAttributes(own);
  Annotations out;
  out.link = builder.AddLink(FromHex(FindAttribute(attributes, kTraceId)).value_or(""),
                             FromHex(FindAttribute(attributes, kSpanId)).value_or(""));
  if (out.link.value != 0) {
    std::erase_if(attributes,
                  [](const Attribute& attribute) { return attribute.key == kTraceId || attribute.key == kSpanId; });
  }
  out.attributes = builder.AddOwn(others, attributes);
  return out;
}

}  // namespace tributary::otlp
