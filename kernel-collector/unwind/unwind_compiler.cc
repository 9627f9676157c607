#include "kernel-collector/unwind/unwind_compiler.h"

#include <ctime>
#include <utility>

#include "base/status.h"
#include "base/thread_cpu.h"
#include "base/types.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/unwind/open_sources.h"

namespace tributary {
namespace {

class OpenFilesCompiler : public UnwindCompiler {
 public:
  explicit OpenFilesCompiler(std::string proc_root) : proc_root_(std::move(proc_root)) {}

  Result Compile(const Request& request) override {
    int64_t begin_ns = ThreadCpuNs();
    Result result;
    result.status = CompileOpen(request, &result);
    // Earlier compiled data does not help when the file changes during the read: open it again.
    if (!result.status.ok() && open_.Forget(request.id)) result.status = CompileOpen(request, &result);
    if (!result.status.ok()) open_.Forget(request.id);
    result.cpu_ns = ThreadCpuNs() - begin_ns;
    return result;
  }

 private:
  absl::StatusOr<UnwindSource*> Source(const Request& request) {
    if (UnwindSource* open = open_.Find(request.id)) return open;
    std::unique_ptr<ElfFile> file;
    if (!request.memory.empty()) {
      ASSIGN_OR_RETURN(file, ElfFile::FromMemory(request.memory));
    } else {
      ASSIGN_OR_RETURN(OpenedFile opened, OpenCodeFile(proc_root_, request.key, request.locations));
      if (opened.id != request.id) return Error(absl::StatusCode::kNotFound, "open: the file has been replaced");
      file = std::move(opened.file);
    }
    ASSIGN_OR_RETURN(std::unique_ptr<UnwindSource> source, UnwindSource::Open(std::move(file)));
    return open_.Add(request.id, std::move(source));
  }

  absl::Status CompileOpen(const Request& request, Result* result) {
    ASSIGN_OR_RETURN(UnwindSource * source, Source(request));
    result->kind = source->kind();
    result->starts = source->starts();
    result->rows.clear();
    if (result->kind != UnwindSource::Kind::kNone) {
      uint64_t before = source->counts().unsupported_rows;
      RETURN_IF_ERROR(source->Compile(request.range, &result->rows));
      result->unsupported_rows = source->counts().unsupported_rows - before;
    }
    return absl::OkStatus();
  }

  const std::string proc_root_;
  OpenSources<ExecutableId> open_;
};

}  // namespace

std::unique_ptr<UnwindCompiler> UnwindCompiler::InProcess(std::string proc_root) {
  return std::make_unique<OpenFilesCompiler>(std::move(proc_root));
}

}  // namespace tributary
