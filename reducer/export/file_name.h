#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The names of the files of an export to files. Tenants choose the names of services, so they may be hostile.
//
//   checkout.cpu.nanoseconds.20261127T140059123Z.folded        STEM.STAMP.EXTENSION
//   checkout.cpu.nanoseconds.20261127T150103007Z.folded.part   a file to which lines may still be appended
//   checkout.cpu.nanoseconds.20261127T150103007Z.folded.damaged   a file that may miss lines after a power loss
//
// The stem of folded stacks is NAME.TYPE.UNIT, that of OTLP is NAME.

namespace tributary {

inline constexpr std::string_view kOtherName = "other";      // names beyond a limit share it
inline constexpr std::string_view kUnknownName = "unknown";  // samples without a name
inline constexpr size_t kFileNameBytesMax = 128;             // of an escaped name

// Escapes the name of a service or a container. Lower-case letters, digits, `_`, `-` and `.` stay, but not `-` and `.`
// at the start. All other bytes become %XX. So two different names never have the same file, also in a file system that
// ignores case. Escapes the first letter of kOtherName and kUnknownName. PercentDecoded returns the name again. Returns
// kUnknownName for "". Returns kOtherName if the result would have more than kFileNameBytesMax bytes.
std::string FileNameOf(std::string_view name);

// Returns "TYPE.UNIT" with the same escapes, and also `.` escaped. From a long type or unit, only the start is left,
// and a digest is appended: two types never have the same result. "" becomes kUnknownName.
std::string FileTypeOf(std::string_view type, std::string_view unit);

struct FileName {
  std::string stem;
  int64_t stamp_ms = 0;  // the unix time at which the file was created
  bool is_part = false;
  bool is_damaged = false;
};
std::string FormatFileName(const FileName& name, std::string_view extension);
// Returns nullopt if FormatFileName with this extension never returns `text`.
std::optional<FileName> ParseFileName(std::string_view text, std::string_view extension);

}  // namespace tributary
