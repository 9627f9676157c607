#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "otlp/profiles_builder.h"

// Folded stacks: lines "CALLER;…;LEAF VALUE", which flamegraph.pl, speedscope and other programs read. They add up the
// values of equal stacks. So a stack may occur in several lines.

namespace tributary::otlp {

// The sums of the samples of one type.
struct FoldedStacks {
  std::string type, unit;  // of the values, such as "cpu" and "nanoseconds"
  struct Entry {
    int32_t stack = 0;  // index into the request's table of stacks
    uint64_t value = 0;
  };
  std::vector<Entry> entries;  // each stack once, with a value above 0, in the order in which the stacks first occur
  uint64_t samples = 0;        // number of samples in `entries`
};

// Adds up the samples of these ResourceProfiles, by type and stack. If a profile counts samples that have a period, the
// value is count × period, in the period's type and unit: so "samples/count" becomes "cpu/nanoseconds". Ignores values
// below 0. Thread-safe.
std::vector<FoldedStacks> FoldStacks(const ProfilesRequest& request, std::span<const int> resources);

// Writes lines. Keeps the escaped names of the request's functions in memory: at most four times the bytes of the
// request's strings. `request` must outlive it. Used by one thread.
class FoldedLines {
 public:
  static constexpr size_t kNameBytesMax = 1'024;   // of a frame's name, before it is escaped; longer names are cut
  static constexpr size_t kLineBytesMax = 65'536;  // of the frames; of a longer stack, the innermost frames are kept

  explicit FoldedLines(const ProfilesRequest& request);

  // Appends the line of an entry. `;`, `\`, control bytes and ill-formed UTF-8 become \xNN, so two different names that
  // are not cut stay different. The names of kernel frames end in "_[k]", those of inlined functions in "_[i]". A frame
  // without a name is "FILE+0xADDRESS", or "[unknown]". A stack without frames is "[no stack]". Returns false if frames
  // were left out, for which the line begins with "[cut]".
  bool Append(const FoldedStacks::Entry& entry, std::string* out);

 private:
  struct Frame {
    std::string text;
    std::string_view mark;
  };
  const std::string& Name(int string);
  bool AddLocation(int index);
  bool AddFrame(std::string text, std::string_view mark);

  const ProfilesRequest& request_;
  int frame_type_key_ = -1;         // the index of "profile.frame.type" in the table of strings
  std::vector<std::string> names_;  // escaped, by index in the table of strings; "": not yet
  std::vector<Frame> frames_;       // of the line that is being made, innermost first
  size_t frame_bytes_ = 0;
};

}  // namespace tributary::otlp
