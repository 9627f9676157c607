#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>

namespace tributary {

// A URL that libcurl has parsed. So this program and libcurl agree about its parts.
class CurlUrl {
 public:
  explicit CurlUrl(const std::string& text) : url_(curl_url()) {
    valid_ = Set(CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME);
  }

  bool valid() const { return valid_; }
  // Returns "" if the URL does not have this part. An IPv6 address has brackets.
  std::string Part(CURLUPart part, unsigned flags = 0) const {
    char* text = nullptr;
    if (curl_url_get(url_.get(), part, &text, flags) != CURLUE_OK) return "";
    const std::unique_ptr<char, Free> owned(text);
    return owned.get();
  }
  // Returns false, and changes nothing, if libcurl refuses the text.
  bool Set(CURLUPart part, const std::string& text, unsigned flags = 0) {
    return curl_url_set(url_.get(), part, text.c_str(), flags) == CURLUE_OK;
  }

 private:
  struct Free {
    void operator()(CURLU* url) const { curl_url_cleanup(url); }
    void operator()(char* text) const { curl_free(text); }
  };

  std::unique_ptr<CURLU, Free> url_;
  bool valid_ = false;
};

}  // namespace tributary
