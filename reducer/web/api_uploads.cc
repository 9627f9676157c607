#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "reducer/web/answers.h"
#include "reducer/web/api.h"

// The requests of the API that change something: uploads of symbols, and deletions of symbol tables.

namespace tributary {
namespace {

int UploadStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 422;  // the file is valid, but has no symbols
    case absl::StatusCode::kResourceExhausted:
      return 413;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

WebResponse UploadError(const absl::Status& status) { return HttpError(UploadStatus(status.code()), Message(status)); }

WebResponse UploadsAreOff() {
  return HttpError(403, "this reducer accepts neither uploads of symbols nor their deletion (--symbol-uploads off)");
}

absl::StatusOr<ExecutableId> ParseBuildId(const std::string& text) {
  const auto id = ExecutableId::FromString(text);
  if (id && id->known()) return *id;
  return Error(absl::StatusCode::kInvalidArgument, "build-id must be hexadecimal, as file(1) shows it");
}

// Receives the body into a file that is deleted when it is closed.
absl::StatusOr<Fd> Receive(HttpBody& body, const WebServer::Options& options) {
  Fd file(open(options.temporary_directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus("make a temporary file in", options.temporary_directory, errno);
  uint64_t bytes = 0;
  absl::Status status = absl::OkStatus();
  const bool whole = body.Read([&](std::string_view piece) {
    bytes += piece.size();
    if (bytes > options.upload_bytes_max) {
      status =
          Error(absl::StatusCode::kResourceExhausted,
                fmt::format("the file is larger than {} bytes (--symbol-file-max-bytes)", options.upload_bytes_max));
    }
    if (status.ok()) status = WriteToFile(file.get(), piece, "the uploaded file");
    return status.ok();
  });
  RETURN_IF_ERROR(status);
  if (!whole) return Error(absl::StatusCode::kInvalidArgument, "the upload was interrupted: send it again");
  return file;
}

// Names may contain quotes. Without them, a name could look like other fields of the line.
std::string Unquoted(std::string text) {
  for (char& c : text) {
    if (c == '"') c = '\'';
  }
  return text;
}

// Logs who has asked for a change of `build_id`, and what came of it. Refusals of the guard are only counted: clients
// that may not change anything must not be able to fill the log.
void LogChange(std::string_view action, const WebRequest& request, const Caller& caller, std::string_view build_id,
               std::string_view result) {
  LogInfo("{} result=\"{}\" build_id={} signed_in_by={} name=\"{}\" address={}", action, Unquoted(std::string(result)),
          build_id.empty() ? "none" : build_id, NameOf(caller.sign_in), Unquoted(caller.name), request.peer);
}

}  // namespace

absl::StatusOr<SymbolImporter::Imported> Api::Import(const WebRequest& request, const ExecutableId& claimed) {
  ASSIGN_OR_RETURN(const Fd received, Receive(*request.body, options_));
  SymbolImporter::File file = {.name = "an upload"};
  file.claimed = claimed;
  file.fd = received.get();
  return context_.importer->Import(file);
}

WebResponse Api::TakeUpload(const WebRequest& request, const Caller& caller) {
  if (context_.importer == nullptr) return UploadsAreOff();
  ExecutableId claimed;
  if (auto id = request.params.find("build-id"); id != request.params.end()) {
    const absl::StatusOr<ExecutableId> parsed = ParseBuildId(id->second);
    if (!parsed.ok()) return UploadError(parsed.status());
    claimed = *parsed;
  }
  if (!upload_slots_.try_acquire() || stopping_) {
    refused_busy_.Add();
    WebResponse response =
        UploadError(Error(absl::StatusCode::kUnavailable,
                          "too many uploads are running, or the reducer is stopping: send the file again soon"));
    response.headers.emplace_back("Retry-After", "2");
    return response;
  }
  const std::unique_ptr<std::counting_semaphore<>, void (*)(std::counting_semaphore<>*)> slot(
      &upload_slots_, [](std::counting_semaphore<>* slots) { slots->release(); });
  const absl::StatusOr<SymbolImporter::Imported> imported = Import(request, claimed);
  const auto log = [&](const ExecutableId& id, std::string_view result) {
    LogChange("symbols uploaded", request, caller, id.known() ? id.ToString() : "", result);
  };
  if (!imported.ok()) {
    log(claimed, Message(imported.status()));
    return UploadError(imported.status());
  }
  log(imported->kept.row.header.id, imported->kept.stored ? "stored" : "not stored: the existing table is as good");
  WebResponse response = JsonAnswer(UploadJson(*imported));
  response.status = imported->kept.stored ? 201 : 200;
  return response;
}

WebResponse Api::RemoveTable(const WebRequest& request, const Caller& caller) {
  if (context_.importer == nullptr) return UploadsAreOff();
  const auto given = request.params.find("build-id");
  const absl::StatusOr<ExecutableId> id = ParseBuildId(given == request.params.end() ? "" : given->second);
  if (!id.ok()) return JsonAnswer(id.status());
  const absl::Status removed = context_.symbols.Remove(*id);
  LogChange("symbols deleted", request, caller, id->ToString(), removed.ok() ? "deleted" : Message(removed));
  if (!removed.ok()) return JsonAnswer(removed);
  return JsonAnswer(RemovedTableJson(*id));
}

}  // namespace tributary
