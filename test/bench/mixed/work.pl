# Works like a report script: hashes, regular expressions, sorting. It never ends.
use strict;
use warnings;

sub words {
    my ($seed, $count) = @_;
    return map { $seed = ($seed * 1103515245 + 12345) & 0x7fffffff; 'w' . ($seed % 997) . ($_ % 3 ? 'x' : '-y') } 1 .. $count;
}

sub count_words {
    my %count;
    $count{$_}++ for grep { /^w\d+[xy]?$/ } @_;
    return \%count;
}

for (my $i = 0;; $i++) {
    my $count = count_words(words($i, 2000));
    my @top = sort { $count->{$b} <=> $count->{$a} || $a cmp $b } keys %$count;
    my $text = join ',', map { sprintf '%s=%d', $_, $count->{$_} } @top;
    (my $upper = $text) =~ s/w(\d+)/W<$1>/g;
}
