#include "kernel-collector/processes/code_file.h"

#include <algorithm>

#include "elf/content_hash.h"

namespace tributary {

CodeFilePtr MakeNamedCode(std::string path, std::string function) {
  auto code = std::make_shared<CodeFile>();
  // No file has these contents.
  code->id = ContentHash("tributary: code without a file: " + path);
  code->path = std::move(path);
  code->only_function = std::move(function);
  code->state = CodeFile::State::kReady;
  return code;
}

void CodeFile::AddLocation(FileLocation location) {
  std::erase_if(locations, [&](const FileLocation& l) { return l.pid == location.pid; });
  if (locations.size() >= kLocationsMax) locations.erase(locations.begin());
  locations.push_back(std::move(location));
}

CodeFileTable::CodeFileTable(Metrics& metrics)
    : refused_(metrics.AddCounter("tributary_collector_executables_refused_total",
                                  "How often a mapped file was ignored, because the table of files was full")) {}

CodeFilePtr CodeFileTable::Intern(const FileKey& key, FileLocation location) {
  if (!key.known()) return nullptr;
  auto it = files_.find(key);
  if (it != files_.end() && !key.build_id.known() && it->second.use_count() == 1) {
    files_.erase(it);
    it = files_.end();
  }
  if (it == files_.end()) {
    if (files_.size() >= kFilesMax) DropUnused();
    if (files_.size() >= kFilesMax) {
      refused_.Add();
      return nullptr;
    }
    auto executable = std::make_shared<CodeFile>();
    executable->key = key;
    executable->id = key.build_id;
    executable->path = location.path;
    it = files_.emplace(key, std::move(executable)).first;
  }
  const CodeFilePtr& executable = it->second;
  executable->AddLocation(std::move(location));
  if (executable->state == CodeFile::State::kFailed) executable->state = CodeFile::State::kUnread;
  if (executable->id.known()) Identified(*executable);
  return executable;
}

void CodeFileTable::Identified(const CodeFile& executable) {
  auto it = sources_.find(executable.id);
  if (it == sources_.end()) {
    // Evicts an arbitrary entry. A requested executable was sampled a moment ago and comes back with its next mapping.
    if (sources_.size() >= kSourcesMax) sources_.erase(sources_.begin());
    it = sources_.emplace(executable.id, std::vector<FileLocation>()).first;
  }
  it->second = executable.locations;
}

std::vector<FileLocation> CodeFileTable::LocationsOf(const ExecutableId& id) const {
  auto it = sources_.find(id);
  return it == sources_.end() ? std::vector<FileLocation>() : it->second;
}

void CodeFileTable::DropUnused() {
  absl::erase_if(files_, [](const auto& entry) { return entry.second.use_count() == 1; });
}

}  // namespace tributary
