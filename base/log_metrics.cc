#include "base/log_metrics.h"

#include <string>
#include <string_view>

#include "base/log.h"

namespace tributary {

void LogMetrics(const Metrics& metrics) {
  const std::string text = metrics.PrometheusText();
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (text[begin] != '#') LogInfo("metric {}", std::string_view(text).substr(begin, end - begin));
  }
}

}  // namespace tributary
