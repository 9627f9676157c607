#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reducer/web/http_message.h"

namespace tributary {

// A file of the web page. The bytes are part of the binary, so the views are always valid.
struct PageFile {
  std::string_view path;  // "index.html" is also "/"
  std::string_view content_type;
  std::string_view bytes;
};

// Serves the files of the web page. The first request for a file compresses the file and computes its hash. Browsers
// may store files, but must ask each time whether a file has changed (ETag, If-None-Match), so a new reducer never
// works with the page of an old one. Thread-safe.
class PageFiles {
 public:
  explicit PageFiles(std::span<const PageFile> files);

  bool is_empty() const { return files_.empty(); }
  // Returns nullopt if there is no such file.
  std::optional<WebResponse> Find(const WebRequest& request) const;

 private:
  struct File {
    PageFile file;
    std::once_flag once;
    std::string etag_value;  // hexadecimal, without quotes
    std::string gzip;        // "": compression does not help
  };
  std::vector<std::unique_ptr<File>> files_;
};

}  // namespace tributary
