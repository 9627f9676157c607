#include "reducer/data_check.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "reducer/store/finding.h"
#include "reducer/stores.h"
#include "symbols/symbol_codec.h"
#include "symbols/table_file.h"

namespace tributary {
namespace {

using store::Finding;

constexpr int kHealthy = 0, kDamaged = 1, kNotChecked = 2;
constexpr int64_t kTableBytesMax = int64_t{1} << 30;

absl::Status CheckTable(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("open", path, errno);
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file.get(), kTableBytesMax, path));
  ASSIGN_OR_RETURN(const std::string encoded, ReadTableFile(bytes));
  return DecodeSymbolTable(encoded).status();
}

// Checks the symbol tables. Uncompressed copies (.flat) are not checked, because the reducer makes them again.
void CheckSymbols(const std::string& directory, const store::FindingVisitor& visit) {
  std::error_code error;
  std::vector<std::string> tables;
  for (std::filesystem::recursive_directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".tsym") tables.push_back(entry->path().string());
  }
  std::sort(tables.begin(), tables.end());
  size_t checked = 0;
  for (const std::string& path : tables) {
    const absl::Status status = CheckTable(path);
    ++checked;
    if (status.ok() || absl::IsNotFound(status)) continue;  // the reducer has just removed it
    visit({Finding::Kind::kDamage, path, "the symbol table cannot be read: " + Message(status),
           "nothing: the reducer removes the table when it needs the table, and requests it again"});
  }
  if (checked > 0) visit({Finding::Kind::kNote, directory, fmt::format("{} symbol tables were checked", checked), ""});
}

void PrintText(const Finding& finding) {
  constexpr std::string_view kWords[] = {"note", "warning", "damage", "not checked"};
  std::string line = fmt::format("{}: {}: {}", kWords[static_cast<size_t>(finding.kind)],
                                 EscapeForDisplay(finding.file), EscapeForDisplay(finding.what));
  if (!finding.advice.empty()) line += "; next: " + finding.advice;
  printf("%s\n", line.c_str());
}

void PrintJson(const Finding& finding) {
  constexpr std::string_view kKinds[] = {"note", "warning", "damage", "newer_release"};
  JsonWriter json;
  json.BeginObject();
  json.Field("kind", kKinds[static_cast<size_t>(finding.kind)]);
  json.Field("file", finding.file);
  json.Field("what", finding.what);
  json.Field("next", finding.advice);
  json.EndObject();
  printf("%s\n", std::move(json).Take().c_str());
}

}  // namespace

int RunDataCheck(int argc, const char* const* argv) {
  if (argc != 3) {
    fprintf(stderr, "reducer: %s needs DIR, SYMBOLS-DIR and a format\n", std::string(kDataCheckArgument).c_str());
    return kNotChecked;
  }
  const std::string directory = argv[0];
  const std::string symbols = *argv[1] != 0 ? argv[1] : directory + "/symbols";
  const bool as_json = std::string_view(argv[2]) == "json";
  int result = kHealthy;
  const store::FindingVisitor visit = [&](const Finding& finding) {
    as_json ? PrintJson(finding) : PrintText(finding);
    if (finding.kind == Finding::Kind::kDamage) result = std::max(result, kDamaged);
    if (finding.kind == Finding::Kind::kNewerRelease) result = kNotChecked;
  };
  const absl::Status status = CheckStores(DefaultStoreUrl(directory), visit);
  if (status.ok()) CheckSymbols(symbols, visit);
  if (status.ok() && fflush(stdout) == 0) return result;
  fprintf(stderr, "tributary: %s\n", status.ok() ? "cannot write to standard output" : Message(status).c_str());
  return kNotChecked;
}

}  // namespace tributary
