# Perl: files, processes, pipes, signals, sockets, sorting
set -e
cat >all.pl <<'P'
use strict; use warnings; use File::Find; use File::Temp; use IO::Socket::UNIX; use POSIX qw(:sys_wait_h); use Fcntl qw(:flock);
$| = 1;
my @pids;
for my $n (1 .. 4) {
    my $pid = fork // die;
    if (!$pid) { exit $n }
    push @pids, $pid;
}
print join(",", sort map { waitpid $_, 0; $? >> 8 } @pids), "\n";
open my $pipe, "-|", "seq 10000 | sort -rn" or die;
my $sum = 0; $sum += $_ while <$pipe>; close $pipe;
print "$sum\n";
my $got = 0; local $SIG{USR1} = sub { $got++ };
kill USR1 => $$ for 1 .. 3;
print "signals $got\n";
my $at = "/tmp/perl.$$";
my $listening = IO::Socket::UNIX->new(Local => $at, Listen => 1) or die $!;
if (!fork) { my $s = IO::Socket::UNIX->new(Peer => $at) or die $!; print $s "line $_\n" for 1 .. 1000; exit 0 }
my $client = $listening->accept; my $lines = () = <$client>; wait;
print "lines $lines\n"; unlink $at;
my %by; find(sub { -f && /\.([a-z]+)$/ and $by{$1}++ }, "/usr/share/perl5/Dpkg");
print join(" ", map { "$_=$by{$_}" } sort keys %by), "\n";
my $file = File::Temp->new; print $file "x" x 100000; $file->flush; truncate $file, 12345; print -s $file->filename, "\n";
flock $file, LOCK_EX or die; print "locked\n";
my $alarmed = eval { local $SIG{ALRM} = sub { die "alarm\n" }; alarm 1; select undef, undef, undef, 60; 1 } ? "no" : $@;
print $alarmed;
P
perl all.pl
