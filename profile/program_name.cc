#include "profile/program_name.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr Pid kKthreadd{2};
constexpr std::string_view kMemoryFile = "/memfd:";
constexpr std::string_view kSeparators = "-_.:";
// Shorter runs of digits are often a version: "libfoo-1.2", "python-311".
constexpr size_t kGeneratedBytesMin = 4;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Accepts hexadecimal digits, at least one of them a decimal digit: "face" and "added" are words.
bool IsGenerated(std::string_view part) {
  return part.size() >= kGeneratedBytesMin && std::all_of(part.begin(), part.end(), IsHex) &&
         std::any_of(part.begin(), part.end(), IsDigit);
}

// A part of a UUID may have only letters.
constexpr size_t kUuidBytes = 36;
bool IsUuid(std::string_view text) {
  if (text.size() != kUuidBytes) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash ? text[i] != '-' : !IsHex(text[i])) return false;
  }
  return true;
}

std::string_view WithoutSeparators(std::string_view name) {
  while (!name.empty() && kSeparators.find(name.back()) != kSeparators.npos) name.remove_suffix(1);
  return name;
}

// Removes generated parts from the end. The program that makes the file chooses the name, and many add a random number,
// a process id or a UUID to it.
std::string_view StablePart(std::string_view name) {
  if (name.size() >= kUuidBytes && IsUuid(name.substr(name.size() - kUuidBytes))) name.remove_suffix(kUuidBytes);
  for (;;) {
    name = WithoutSeparators(name);
    const size_t separator = name.find_last_of(kSeparators);
    const size_t begin = separator == name.npos ? 0 : separator + 1;
    if (!IsGenerated(name.substr(begin))) return name;
    name = name.substr(0, begin);
  }
}

// runc names its copy "runc_cloned:/proc/self/exe".
std::string_view NameOfMemoryFile(std::string_view name, std::string_view comm) {
  name = StablePart(name.substr(0, name.find('/')));
  if (!name.empty()) return name;
  // A program that fexecve starts has the number of its descriptor as comm.
  const bool is_number = std::all_of(comm.begin(), comm.end(), IsDigit);
  return is_number ? "memfd" : comm;
}

}  // namespace

std::string_view ProgramName(std::string_view executable_path, std::string_view comm, Pid parent) {
  if (executable_path.starts_with(kMemoryFile)) {
    return NameOfMemoryFile(executable_path.substr(kMemoryFile.size()), comm);
  }
  const size_t slash = executable_path.rfind('/');
  const std::string_view file = executable_path.substr(slash + 1);  // npos + 1 = 0
  if (!file.empty()) return file;
  return parent == kKthreadd ? comm.substr(0, comm.find('/')) : comm;
}

}  // namespace tributary
