/* gro CARD 0|1: switches the kernel's own coalescing (GRO) on a card, for which busybox has no program. */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct ethtool_value value = { .cmd = ETHTOOL_SGRO, .data = argv[2][0] == '1' };
    struct ifreq request = { .ifr_data = (char *)&value };
    strncpy(request.ifr_name, argv[1], sizeof request.ifr_name - 1);
    int connection = socket(AF_INET, SOCK_DGRAM, 0);
    if (ioctl(connection, SIOCETHTOOL, &request) == 0)
        return 0;
    perror("gro");
    return 1;
}
