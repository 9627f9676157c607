#include "otlp/folded_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/log.h"
#include "base/saturate.h"
#include "base/utf8.h"
#include "otlp/request_identity.h"
#include "otlp/table_entries.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::profiles::v1development;

constexpr std::string_view kCut = "[cut];";

std::string EscapeFrame(std::string_view name) {
  std::string out;
  for (const char c : CutUtf8(name, FoldedLines::kNameBytesMax)) {
    if (c == ';' || c == '\\') {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += c;
    }
  }
  return EscapeForDisplay(out);
}

uint64_t Times(uint64_t value, uint64_t factor) {
  uint64_t product = 0;
  return __builtin_mul_overflow(value, factor, &product) ? UINT64_MAX : product;
}

uint64_t SumOf(const proto::Sample& sample) {
  uint64_t sum = 0;
  for (const int64_t value : sample.values()) AddSaturating(static_cast<uint64_t>(std::max<int64_t>(value, 0)), &sum);
  return sum;
}

// Adds up the profiles of one part of a request.
class Folder {
 public:
  explicit Folder(const ProfilesRequest& request) : strings_(request.dictionary().string_table()) {}

  void Add(const proto::Profile& profile) {
    proto::ValueType type = profile.sample_type();
    const bool counts = At(strings_, type.unit_strindex()) == "count";
    uint64_t factor = 1;
    if (counts && profile.period() > 0 && profile.period_type().type_strindex() != 0) {
      type = profile.period_type();
      factor = static_cast<uint64_t>(profile.period());
    }
    Sums& sums = SumsOf(At(strings_, type.type_strindex()), At(strings_, type.unit_strindex()));
    for (const proto::Sample& sample : profile.samples()) {
      const auto times = static_cast<uint64_t>(sample.timestamps_unix_nano_size());
      const uint64_t sum = sample.values().empty() ? times : SumOf(sample);
      if (sum == 0) continue;
      AddSaturating(SampleCount(sample, IsCount(profile)), &sums.stacks.samples);
      auto& entries = sums.stacks.entries;
      const auto [place, is_new] = sums.places.try_emplace(sample.stack_index(), entries.size());
      if (is_new) entries.push_back({.stack = sample.stack_index(), .value = 0});
      AddSaturating(Times(sum, factor), &entries[place->second].value);
    }
  }

  std::vector<FoldedStacks> Take() && {
    std::vector<FoldedStacks> out;
    for (auto& [name, sums] : sums_) {
      if (!sums.stacks.entries.empty()) out.push_back(std::move(sums.stacks));
    }
    return out;
  }

 private:
  struct Sums {
    FoldedStacks stacks;
    absl::flat_hash_map<int32_t, size_t> places;  // in `stacks.entries`, by stack
  };

  Sums& SumsOf(const std::string& type, const std::string& unit) {
    Sums& sums = sums_[{type, unit}];
    sums.stacks.type = type;
    sums.stacks.unit = unit;
    return sums;
  }

  const google::protobuf::RepeatedPtrField<std::string>& strings_;
  std::map<std::pair<std::string, std::string>, Sums> sums_;  // by type and unit
};

}  // namespace

std::vector<FoldedStacks> FoldStacks(const ProfilesRequest& request, std::span<const int> resources) {
  Folder folder(request);
  for (const int resource : resources) {
    for (const proto::ScopeProfiles& scope : request.resource_profiles(resource).scope_profiles()) {
      for (const proto::Profile& profile : scope.profiles()) folder.Add(profile);
    }
  }
  return std::move(folder).Take();
}

FoldedLines::FoldedLines(const ProfilesRequest& request)
    : request_(request), names_(static_cast<size_t>(request.dictionary().string_table_size())) {
  const auto& strings = request.dictionary().string_table();
  const auto key = std::find(strings.begin(), strings.end(), "profile.frame.type");
  if (key != strings.end()) frame_type_key_ = static_cast<int>(key - strings.begin());
}

const std::string& FoldedLines::Name(int string) {
  static const std::string kNone;
  if (string <= 0 || static_cast<size_t>(string) >= names_.size()) return kNone;
  std::string& name = names_[static_cast<size_t>(string)];
  if (name.empty()) name = EscapeFrame(request_.dictionary().string_table(string));
  return name;
}

// Returns false if the line is full.
bool FoldedLines::AddFrame(std::string text, std::string_view mark) {
  if (text.empty()) text = "[unknown]";
  const size_t bytes = text.size() + mark.size() + 1;
  if (frame_bytes_ + bytes > kLineBytesMax) return false;
  frame_bytes_ += bytes;
  frames_.push_back({std::move(text), mark});
  return true;
}

bool FoldedLines::AddLocation(int index) {
  const proto::ProfilesDictionary& dictionary = request_.dictionary();
  const proto::Location& location = At(dictionary.location_table(), index);
  bool is_kernel = false;
  for (const int of : location.attribute_indices()) {
    const proto::KeyValueAndUnit& attribute = At(dictionary.attribute_table(), of);
    if (attribute.key_strindex() == frame_type_key_) is_kernel = attribute.value().string_value() == "kernel";
  }
  const std::string_view mark = is_kernel ? "_[k]" : "";
  for (int i = 0; i < location.lines_size(); ++i) {
    const proto::Function& function = At(dictionary.function_table(), location.lines(i).function_index());
    const bool is_inlined = i + 1 < location.lines_size();
    if (!AddFrame(Name(function.name_strindex()), is_inlined ? "_[i]" : mark)) return false;
  }
  if (!location.lines().empty()) return true;
  const std::string& path = Name(At(dictionary.mapping_table(), location.mapping_index()).filename_strindex());
  std::string text = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  if (text.empty() && is_kernel) text = "[kernel]";
  if (!text.empty()) text += fmt::format("+{:#x}", location.address());
  return AddFrame(std::move(text), mark);
}

bool FoldedLines::Append(const FoldedStacks::Entry& entry, std::string* out) {
  frames_.clear();
  frame_bytes_ = 0;
  const auto& locations = At(request_.dictionary().stack_table(), entry.stack).location_indices();
  const bool fits = std::all_of(locations.begin(), locations.end(), [this](int index) { return AddLocation(index); });
  if (!fits) *out += kCut;
  if (frames_.empty()) *out += "[no stack]";
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    if (frame != frames_.rbegin()) *out += ';';
    *out += frame->text;
    *out += frame->mark;
  }
  fmt::format_to(std::back_inserter(*out), " {}\n", entry.value);
  return fits;
}

}  // namespace tributary::otlp
