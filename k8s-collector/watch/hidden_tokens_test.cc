#include "k8s-collector/watch/hidden_tokens.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(HiddenTokens, HidesLongWords) {
  const std::string short_word(39, 'a'), token = std::string(20, 'A') + "." + std::string(20, '_');
  EXPECT_EQ(HideTokens(""), "");
  EXPECT_EQ(HideTokens("cannot log in"), "cannot log in");
  EXPECT_EQ(HideTokens(short_word), short_word);
  EXPECT_EQ(HideTokens(token), "(41 characters are hidden)");
  EXPECT_EQ(HideTokens("a=" + token + "&b \"" + token + "\""),
            "a=(41 characters are hidden)&b \"(41 characters are hidden)\"");
  EXPECT_EQ(HideTokens("/usr/lib/google-cloud-sdk/bin/gke-gcloud-auth-plugin: \xc3\xa9"),
            "/usr/lib/google-cloud-sdk/bin/gke-gcloud-auth-plugin: \xc3\xa9");
}

}  // namespace
}  // namespace tributary
