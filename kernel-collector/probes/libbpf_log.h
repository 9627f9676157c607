#pragma once

#include <string>

namespace tributary {

// While a LibbpfLog lives, libbpf's messages on this thread go to our debug log and are kept for an error message. At
// other times, they go only to the debug log. libbpf's printer is a process-wide function pointer, so the state behind
// it is per thread. LibbpfLogs may not be nested.
class LibbpfLog {
 public:
  LibbpfLog();
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  // The last 64 KiB of the messages.
  const std::string& text() const { return text_; }
  void Append(const std::string& message);

 private:
  std::string text_;
};

}  // namespace tributary
