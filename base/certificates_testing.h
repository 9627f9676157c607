#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"

// For tests: creates certificate authorities and certificates when a test runs.

namespace tributary {

struct PemPair {
  std::string cert, key;
};

class TestAuthority {
 public:
  struct Subject {
    std::string common_name;
    std::string alternatives;                   // "DNS:a,URI:b,IP:127.0.0.1"
    int64_t begins_s = -3600, ends_s = 86'400;  // from now
  };

  explicit TestAuthority(const std::string& name) : key_(NewKey()) {
    cert_ = Make({.common_name = name}, *key_, nullptr);
  }
  std::string pem() const { return CertPem(*cert_); }
  PemPair Issue(const Subject& subject) const {
    Key key = NewKey();
    Cert cert = Make(subject, *key, cert_.get());
    return {CertPem(*cert), KeyPem(*key)};
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* cert) const { X509_free(cert); }
    void operator()(BIO* bio) const { BIO_free(bio); }
    void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Cert = std::unique_ptr<X509, Free>;

  static Key NewKey() { return Key(EVP_EC_gen("P-256")); }
  static std::string TextOf(BIO* bio) {
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio, &text);
    return {text, static_cast<size_t>(size)};
  }
  static std::string CertPem(X509& cert) {
    std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), &cert);
    return TextOf(bio.get());
  }
  static std::string KeyPem(EVP_PKEY& key) {
    std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr);
    return TextOf(bio.get());
  }
  static void Extend(X509* cert, X509* issuer, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
    std::unique_ptr<X509_EXTENSION, Free> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    TRIBUTARY_CHECK(extension != nullptr && X509_add_ext(cert, extension.get(), -1) == 1);
  }
  // Makes a certificate that the authority's key signs. If `issuer` is nullptr, the subject is also the issuer.
  Cert Make(const Subject& subject, EVP_PKEY& key, X509* issuer) const {
    static std::atomic<long> serial{1};
    Cert cert(X509_new());
    X509_set_version(cert.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), serial++);
    X509_gmtime_adj(X509_getm_notBefore(cert.get()), subject.begins_s);
    X509_gmtime_adj(X509_getm_notAfter(cert.get()), subject.ends_s);
    X509_set_pubkey(cert.get(), &key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(subject.common_name.c_str()), -1, -1, 0);
    X509* by = issuer != nullptr ? issuer : cert.get();
    X509_set_issuer_name(cert.get(), X509_get_subject_name(by));
    Extend(cert.get(), by, NID_basic_constraints, issuer == nullptr ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (!subject.alternatives.empty()) Extend(cert.get(), by, NID_subject_alt_name, subject.alternatives);
    TRIBUTARY_CHECK(X509_sign(cert.get(), key_.get(), EVP_sha256()) > 0);
    return cert;
  }

  Key key_;
  Cert cert_;
};

// Returns the private key `pem`, encrypted with `passphrase`.
inline std::string EncryptedKey(const std::string& pem, const std::string& passphrase) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                     BIO_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  TRIBUTARY_CHECK(PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(), passphrase.data(),
                                                static_cast<int>(passphrase.size()), nullptr, nullptr) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<size_t>(size)};
}

// A temporary directory for small files. The destructor removes it.
class TestFiles {
 public:
  TestFiles() {
    std::string path = std::filesystem::temp_directory_path() / "tributary-tls-XXXXXX";
    TRIBUTARY_CHECK(mkdtemp(path.data()) != nullptr);
    directory_ = path;
  }
  ~TestFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  TestFiles(const TestFiles&) = delete;
  TestFiles& operator=(const TestFiles&) = delete;

  std::string Path(const std::string& name) const { return directory_ / name; }
  // Creates the file, or replaces it atomically with rename(), as operators' tools do.
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    const std::string path = Path(name), aside = path + ".new";
    std::ofstream(aside) << text;
    TRIBUTARY_CHECK(chmod(aside.c_str(), mode) == 0 && rename(aside.c_str(), path.c_str()) == 0);
    return path;
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace tributary
