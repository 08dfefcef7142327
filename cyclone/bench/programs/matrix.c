// Products of 30 by 30 matrices.
#include <stdio.h>
#include <stdlib.h>

#define SIZE 30

static int left[SIZE][SIZE], right[SIZE][SIZE], product[SIZE][SIZE];

static void fill(int matrix[SIZE][SIZE])
{
    int count = 1;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            matrix[i][j] = count++;
}

static void multiply(void)
{
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            int sum = 0;
            for (int k = 0; k < SIZE; k++)
                sum += left[i][k] * right[k][j];
            product[i][j] = sum;
        }
}

int main(int argc, char **argv)
{
    int rounds = argc == 2 ? atoi(argv[1]) : 1;
    fill(left);
    fill(right);
    for (int i = 0; i < rounds; i++)
        multiply();
    printf("%d %d %d %d\n", product[0][0], product[2][3], product[3][2], product[4][4]);
    return 0;
}
